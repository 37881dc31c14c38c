"""PyTorch's softmax of each row; pawl_baseline comes with the worker and times it, alone and beside the winner."""
import pawl_baseline


def softmax(torch, sizes, tensors):
    return torch.softmax(tensors["in"], -1)


pawl_baseline.main(softmax, "torch.softmax(x, -1)")
