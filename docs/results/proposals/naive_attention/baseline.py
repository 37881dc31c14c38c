"""PyTorch's scaled_dot_product_attention; pawl_baseline comes with the worker and times it, alone and beside the winner."""
import pawl_baseline


def attention(torch, sizes, tensors):
    return torch.nn.functional.scaled_dot_product_attention(tensors["q"], tensors["k"], tensors["v"])


pawl_baseline.main(attention, "F.scaled_dot_product_attention")
