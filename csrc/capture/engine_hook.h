// Where the autograd engine hands a backward over to us, before it runs anything.
#pragma once

namespace backbind {

// Installs our function as the engine's compiled autograd, if it is not installed yet. Backwards of threads that
// capture nothing go on to the engine.
//
// Raises RuntimeError where torch refuses, which it may do while another thread is inside a backward.
void install_engine_hook();

}  // namespace backbind
