/* What the kernels of the CUDA target want as workspace, with the settings it depends on. Plain C:
 * gplan asks these functions while it plans, where no CUDA is. */
#ifndef GP_CUDA_WORK_H
#define GP_CUDA_WORK_H

#include "../c/base.h"

#endif
