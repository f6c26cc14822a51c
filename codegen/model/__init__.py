"""The checked model of all nodes, made from torchgen's records and the places in the YAML."""
