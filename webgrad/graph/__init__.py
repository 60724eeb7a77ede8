"""The lazy graph: ops, nodes, and a graph as numbers."""
