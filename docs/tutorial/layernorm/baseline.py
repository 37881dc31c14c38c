"""PyTorch's layer_norm; pawl_baseline comes with the worker and times it, alone and beside the winner."""
import pawl_baseline


def layer_norm(torch, sizes, tensors):
    return torch.nn.functional.layer_norm(tensors["in"], (sizes["COLS"],), tensors["weight"], tensors["bias"], eps=1e-5)


pawl_baseline.main(layer_norm, "F.layer_norm")
