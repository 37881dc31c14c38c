"""PyTorch's transposed copy; pawl_baseline comes with the worker and times it, alone and beside the winner."""
import pawl_baseline


def transpose(torch, sizes, tensors):
    return tensors["in"].t().contiguous()


pawl_baseline.main(transpose, "x.t().contiguous()")
