"""Keeps decisions away from where rounding would make them, as tests/interpreter/decisions.c does.

The derivative of a relu jumps at 0, that of a maxpool where two elements are equal. Of millions of
elements some are nearer to such a place than the rounding of float: a whole term of the gradient is
then there or not, in each program by its own rounding. All are right, and how far they are apart
says nothing of their arithmetic: the gradients of vgg16 were off by 1e-6 down to one layer and by
8e-3 from the next, by another one in PyTorch than in gplan. So the bias before a relu is moved,
channel by channel, to the middle of the widest gap between elements near 0; and the filter before
a maxpool by a hundredth, where two elements of a window are nearly equal."""
import torch
import torch.nn as nn
import torch.nn.functional as F

REACH = 0.05     # of the deviation: how far a bias is moved at most
NEAR_TIE = 1e-5  # of the largest element
ROUNDS = 40


class Settling:
    """A forward pass of a model in double that moves parameters as it goes. What ran last is
    remembered: a convolution with what it saw, a norm after it, and who has the bias."""

    def __init__(self, model):
        self.model, self.conv, self.norm, self.seen, self.last = model, None, None, None, None
        self.tied, self.least = 0, float("inf")

    def ran(self, module, arguments, _):
        if isinstance(module, nn.Conv2d):
            self.conv, self.norm, self.seen = module, None, arguments[0]
        elif isinstance(module, nn.BatchNorm2d):
            self.norm = module
        self.last = module

    def settle(self, x, kinks, which=slice(None)):
        """Moves biases, all or some, and with them x, which has these channels."""
        channels = x.transpose(0, 1).flatten(1)
        reach = (REACH * channels.pow(2).mean().sqrt()).expand(len(channels), 1)
        near = torch.cat([channels - kink for kink in kinks], 1)
        near = torch.minimum(torch.maximum(near, -reach), reach)
        near = torch.cat([near, -reach, reach], 1).sort(1)[0]
        gap, at = near.diff(dim=1).max(1, keepdim=True)
        middle = near.gather(1, at) + gap / 2
        bias = self.last.bias[which]
        moved = (bias - middle[:, 0]).float().double() - bias
        self.last.bias[which] = bias + moved
        x = x + moved.view(1, -1, *[1] * (x.dim() - 2))
        nearest = min((x - kink).abs().min().item() for kink in kinks)
        self.least = min(self.least, nearest / x.abs().max().item())
        return x

    def near_ties(self, x, kernel, stride, pad, largest):
        """Channels where the two largest of a window are nearly equal. Equal ones are zeros that a
        relu made: whichever is taken, nothing flows back through it."""
        padded = F.pad(x, [pad] * 4, value=float("-inf"))
        windows = padded.unfold(2, kernel, stride).unfold(3, kernel, stride).flatten(4)
        first = windows.topk(2, -1)[0]
        apart = first[..., 0] - first[..., 1]
        return ((apart > 0) & (apart < NEAR_TIE * largest)).flatten(2).any(2).any(0)

    def untie(self, x, kernel, stride, pad):
        """Moves filters by a hundredth, until no window has a near tie, and x with them: that is
        what relu made of the convolution, through a norm or not."""
        conv, norm, largest = self.conv, self.norm, x.max()
        tied = self.near_ties(x, kernel, stride, pad, largest).nonzero()[:, 0]
        for _ in range(ROUNDS):
            if not len(tied):
                break
            w = conv.weight[tied]
            w = (w * (1 + 0.01 * (2 * torch.rand_like(w) - 1))).float().double()
            conv.weight[tied] = w
            y = F.conv2d(self.seen, w, None if conv.bias is None else conv.bias[tied], conv.stride,
                         conv.padding)
            if norm is not None:
                y = F.batch_norm(y, None, None, norm.weight[tied], norm.bias[tied], True,
                                 eps=norm.eps)
            y = self.settle(y, (0,), tied).clamp(min=0)
            x[:, tied] = y
            tied = tied[self.near_ties(y, kernel, stride, pad, largest)]
        self.tied += len(tied)

    @torch.no_grad()
    def run(self, *inputs):
        relu, hardtanh, pool = F.relu, F.hardtanh, F.max_pool2d

        def untied_pool(x, kernel, stride=None, padding=0, *rest, **named):
            self.untie(x, kernel, stride or kernel, padding)
            return pool(x, kernel, stride, padding, *rest, **named)

        hooks = [m.register_forward_hook(self.ran) for m in self.model.modules()
                 if isinstance(m, (nn.Conv2d, nn.Linear, nn.BatchNorm2d))]
        try:
            F.relu = lambda x, inplace=False: relu(self.settle(x, (0,)))
            F.hardtanh = lambda x, low, high, inplace=False: hardtanh(
                self.settle(x, (low, high)), low, high)
            F.max_pool2d = untied_pool
            self.model(*inputs)
        finally:
            F.relu, F.hardtanh, F.max_pool2d = relu, hardtanh, pool
            for hook in hooks:
                hook.remove()


def decide(model, images):
    """Leaves the model in single precision. Returns the distance to the nearest kink, as a share of
    the largest element there, and the channels with near ties that are left."""
    settling = Settling(model.double().train())
    settling.run(images.double())
    model.float()
    return settling.least, settling.tied
