//! Talks to a GPU: KFD ioctls, memory, queues, signals, packets. Knows no kernel and no model.
