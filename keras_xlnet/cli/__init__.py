"""The command `xlnet`: thin commands over the library."""
