"""What the subcommands of `xlnet` do. Their arguments are in `xlnet_command.py`."""
