/* The program: its subcommands are in commands.c. */
#include "target/command.h"

int main(int argc, char **argv)
{
	return command_main(argc, argv);
}
