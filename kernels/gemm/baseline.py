"""PyTorch's matmul, which is cuBLAS's; pawl_baseline comes with the worker and times it, alone and beside the winner."""
import pawl_baseline


def matmul(torch, sizes, tensors):
    return torch.matmul(tensors["a"], tensors["b"])


pawl_baseline.main(matmul, "torch.matmul, fp16")
