// The program: everything is in RunMain.
#include "agent/command_line.h"

int main(int argc, char** argv) { return vfio_agent::RunMain(argc, argv); }
