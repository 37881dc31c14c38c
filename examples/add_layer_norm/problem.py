"""Residual addition and layer normalisation as torch.nn.functional does them."""
import torch
import torch.nn.functional as F

EPS = 1e-5


def inputs(sizes, seed):
    return {}  # kernel.toml has the fills


def reference(x, residual, weight, bias):
    total = (x.float() + residual.float()).to(residual.dtype)
    wide = total.float()
    variance, mean = torch.var_mean(wide, dim=-1, unbiased=False)
    out = F.layer_norm(wide, wide.shape[-1:], weight.float(), bias.float(), EPS)
    return {"residual": total, "out": out.to(x.dtype), "mean": mean, "rstd": torch.rsqrt(variance + EPS)}


def baseline(x, residual, weight, bias):
    total = x + residual
    return F.layer_norm(total, total.shape[-1:], weight, bias, EPS)
