"""PyTorch's sum of each row; pawl_baseline comes with the worker and times it, alone and beside the winner."""
import pawl_baseline


def row_sums(torch, sizes, tensors):
    return tensors["in"].sum(-1)


pawl_baseline.main(row_sums, "x.sum(-1)")
