"""The subcommands of `xlnet`. Their arguments are in `xlnet_command.py`."""
