"""What problem.py imports."""


def edge_deviation():
    return 0.1
