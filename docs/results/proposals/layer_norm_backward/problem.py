"""The backward pass of layer normalisation, as autograd calls it: PyTorch's own kernels are the baseline."""
import torch

EPS = 1e-5


def inputs(sizes, seed):
    """x and the statistics that the forward pass has kept of it; dy and gamma are fills of kernel.toml."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(sizes["N"], sizes["C"], generator=generator)
    variance, mean = torch.var_mean(x, dim=-1, unbiased=False)
    return {"x": x, "mean": mean, "rstd": torch.rsqrt(variance + EPS)}


def reference(dy, x, mean, rstd, gamma):
    wide, rstd = dy.double(), rstd.double()[:, None]
    normal = (x.double() - mean.double()[:, None]) * rstd
    scaled = wide * gamma.double()
    dx = rstd * (scaled - scaled.mean(-1, keepdim=True) - normal * (scaled * normal).mean(-1, keepdim=True))
    return {"dx": dx, "dgamma": (wide * normal).sum(0), "dbeta": wide.sum(0)}


def baseline(dy, x, mean, rstd, gamma):
    """The operator behind torch.nn.LayerNorm's backward. It only asks beta for its shape and type."""
    dx, dgamma, dbeta = torch.ops.aten.native_layer_norm_backward(
        dy, x, [x.shape[1]], mean[:, None], rstd[:, None], gamma, gamma, [True, True, True]
    )
    return {"dx": dx, "dgamma": dgamma, "dbeta": dbeta}
