/* A model, inputs and outputs with names that had to be changed. */
#include "double.h"
#include "expect.h"

int main(void)
{
    START(double_, m, DOUBLE__ARENA_BYTES)
    double__reset(&m, 0);
    for (int i = 0; i < 2; i++) {
        double__int(&m)[i] = 1;
        double__init_(&m)[i] = 10;
        double__class(&m)[i] = 100;
        double__Class(&m)[i] = 1000;
        double__tensors_(&m)[i] = 10000;
    }
    EXPECT(DOUBLE__CLASS_COUNT == 2 && DOUBLE__CLASS_COUNT_ == 2);
    EXPECT(double__forward(&m) == DOUBLE__OK);
    EXPECT(double__strerror_(&m)[1] == 11111);
    EXPECT(double__f32(&m)[0] == 22222);
    EXPECT(double__forward_count(&m)[0] == 33333);
    free(m_arena);
    FINISH();
}
