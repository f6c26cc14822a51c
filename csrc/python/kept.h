// Objects of Python that are kept by C++, and the GIL for those who do not know whether they hold it.
#pragma once

#include <torch/csrc/python_headers.h>

namespace backbind::python {

// Holds the GIL while it lives, whether or not this thread held it before.
class GilHeld {
 public:
  GilHeld() : state_(PyGILState_Ensure()) {}
  ~GilHeld() { PyGILState_Release(state_); }
  GilHeld(const GilHeld&) = delete;
  GilHeld& operator=(const GilHeld&) = delete;

 private:
  PyGILState_STATE state_;
};

// A reference whose owner may not hold the GIL when it lets go of it.
class Kept {
 public:
  // The GIL must be held.
  explicit Kept(PyObject* object) : object_(object) { Py_INCREF(object); }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  ~Kept() {
    if (Py_IsInitialized() == 0) return;  // the process ends, and Python went first
    const GilHeld held;
    Py_DECREF(object_);
  }

  PyObject* get() const { return object_; }

 private:
  PyObject* object_;
};

}  // namespace backbind::python
