#include <set>

#include "tests/gpu_model/report.hpp"
#include "tests/gpu_model/runtime/call.hpp"
#include "tests/gpu_model/runtime/streams.hpp"

using namespace gpu_model;

namespace {

std::set<Event*>& events() {
  static auto* e = new std::set<Event*>;
  return *e;
}

Event* find_event(cudaEvent_t handle) {
  auto* e = reinterpret_cast<Event*>(handle);
  return events().contains(e) ? e : nullptr;
}

void never_recorded(const char* where) { report({"event never recorded", where, "it stands for no work"}); }

cudaError_t make_event(cudaEvent_t* to, unsigned flags) {
  return call([&](Lock&) {
    if (flags & ~(cudaEventBlockingSync | cudaEventDisableTiming))
      return cudaErrorInvalidValue;  // not between processes
    auto* e = new Event{current_device(), !(flags & cudaEventDisableTiming), nullptr};
    events().insert(e);
    *to = reinterpret_cast<cudaEvent_t>(e);
    return cudaSuccess;
  });
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* to, unsigned flags, int) {
  return call([&](Lock&) {
    if (flags != cudaStreamNonBlocking) {
      report({"not modelled", "cudaStreamCreateWithPriority", "a stream that waits for the default one"});
      return cudaErrorInvalidValue;
    }
    *to = make_stream();
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call([&](Lock&) {
    Stream* s = find_stream(stream);
    if (!s) return no_handle("cudaStreamDestroy");
    destroy_stream(*s);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call([&](Lock& lock) {
    Stream* s = find_stream(stream);
    if (!s) return no_handle("cudaStreamSynchronize");
    const int device = s->device;
    wait_for(lock, mark_end(*s));
    return static_cast<cudaError_t>(device_error(device));
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return call([&](Lock&) {
    Stream* s = find_stream(stream);
    Event* e = find_event(event);
    if (!s || !e) return no_handle("cudaStreamWaitEvent");
    if (!e->mark) {
      never_recorded("cudaStreamWaitEvent");
      return cudaSuccess;
    }
    wait_in(*s, e->mark);
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* to) { return make_event(to, cudaEventDefault); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* to, unsigned flags) { return make_event(to, flags); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call([&](Lock&) {
    Event* e = find_event(event);
    if (!e) return no_handle("cudaEventDestroy");
    events().erase(e);
    delete e;
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call([&](Lock&) {
    Stream* s = find_stream(stream);
    Event* e = find_event(event);
    if (!s || !e) return no_handle("cudaEventRecord");
    if (s->device != e->device) return wrong_device("cudaEventRecord: a stream", s->device, e->device);
    e->mark = mark_end(*s);
    return cudaSuccess;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call([&](Lock&) {
    Event* e = find_event(event);
    if (!e) return no_handle("cudaEventQuery");
    if (!e->mark) return cudaSuccess;
    const MarkPointer mark = e->mark;
    return ask(*mark) ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call([&](Lock& lock) {
    Event* e = find_event(event);
    if (!e) return no_handle("cudaEventSynchronize");
    if (!e->mark) {
      never_recorded("cudaEventSynchronize");
      return cudaSuccess;
    }
    const MarkPointer mark = e->mark;
    wait_for(lock, mark);
    return cudaSuccess;
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return call([&](Lock&) {
    Event *b = find_event(begin), *e = find_event(end);
    if (!b || !e) return no_handle("cudaEventElapsedTime");
    if (!b->timed || !e->timed) return cudaErrorInvalidResourceHandle;
    if (!b->mark || !e->mark) {
      never_recorded("cudaEventElapsedTime");
      return cudaErrorInvalidResourceHandle;
    }
    if (!b->mark->reached || !e->mark->reached) return cudaErrorNotReady;
    *milliseconds = static_cast<float>(e->mark->milliseconds - b->mark->milliseconds);
    return cudaSuccess;
  });
}
}
