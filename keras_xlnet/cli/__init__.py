"""The command `xlnet`: converts, inspects and compares checkpoints."""
