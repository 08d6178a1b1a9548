//! A bounded queue from one thread to several.
//!
//! It is bounded by the number of items and by their weight, so that a few large ones do not take the memory of many
//! small ones. An item that is heavier than the bound is taken when the queue is empty.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The time for which a thread waits before it checks the flag that stops it.
const LOOK: Duration = Duration::from_millis(50);

/// The queue.
#[derive(Debug)]
pub struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    most: usize,
    most_weight: usize,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<(T, usize)>,
    weight: usize,
    closed: bool,
}

impl<T> Queue<T> {
    /// An empty queue with a limit on the number of items, and on their total weight.
    pub fn new(most: usize, most_weight: usize) -> Self {
        let state = Mutex::new(State { items: VecDeque::new(), weight: 0, closed: false });
        Self { state, changed: Condvar::new(), most: most.max(1), most_weight }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an item if the queue is not full.
    ///
    /// # Errors
    /// The item, if the queue is full.
    pub fn try_push(&self, item: T, weight: usize) -> Result<(), T> {
        let mut state = self.state();
        let is_full = state.items.len() >= self.most || state.weight + weight > self.most_weight;
        if is_full && !state.items.is_empty() {
            return Err(item);
        }
        state.weight += weight;
        state.items.push_back((item, weight));
        self.changed.notify_all();
        Ok(())
    }

    /// Adds an item, and waits while the queue is full.
    ///
    /// # Errors
    /// The item, if `stop` is set before.
    pub fn push(&self, mut item: T, weight: usize, stop: &AtomicBool) -> Result<(), T> {
        loop {
            item = match self.try_push(item, weight) {
                Ok(()) => return Ok(()),
                Err(item) if stop.load(Ordering::Relaxed) => return Err(item),
                Err(item) => item,
            };
            let state = self.state();
            let waited = self.changed.wait_timeout(state, LOOK);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Takes the first item when there is one. `None` at the end, or if `stop` is set.
    pub fn pop(&self, stop: &AtomicBool) -> Option<T> {
        let mut state = self.state();
        loop {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            if let Some((item, weight)) = state.items.pop_front() {
                state.weight -= weight;
                self.changed.notify_all();
                return Some(item);
            }
            if state.closed {
                return None;
            }
            state = self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// No more items will be added.
    pub fn close(&self) {
        self.state().closed = true;
        self.changed.notify_all();
    }

    /// The number of items that wait.
    pub fn len(&self) -> usize {
        self.state().items.len()
    }

    /// Returns true if no item waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn it_is_bounded_by_count_and_by_weight() {
        let stop = AtomicBool::new(false);
        let queue = Queue::new(2, 10);
        assert_eq!(queue.try_push('a', 11), Ok(()), "a heavy one is taken alone");
        assert_eq!(queue.try_push('b', 1), Err('b'));
        assert_eq!(queue.pop(&stop), Some('a'));
        assert_eq!(
            [queue.try_push('b', 4), queue.try_push('c', 4), queue.try_push('d', 1)],
            [Ok(()), Ok(()), Err('d')]
        );
        assert_eq!(queue.pop(&stop), Some('b'));
        assert_eq!(queue.try_push('d', 7), Err('d'));
        stop.store(true, Ordering::Relaxed);
        assert_eq!(queue.push('d', 7, &stop), Err('d'));
        assert_eq!((queue.pop(&stop), queue.len()), (None, 1));
        stop.store(false, Ordering::Relaxed);
        queue.close();
        assert_eq!([queue.pop(&stop), queue.pop(&stop)], [Some('c'), None]);
    }

    #[test]
    fn every_item_arrives_once() {
        let (stop, queue, sum) = (AtomicBool::new(false), Queue::new(3, 100), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while let Some(item) = queue.pop(&stop) {
                        sum.fetch_add(item, Ordering::Relaxed);
                    }
                });
            }
            for item in 0..1000 {
                assert!(queue.push(item, 1, &stop).is_ok());
            }
            queue.close();
        });
        assert_eq!(sum.into_inner(), 999 * 500);
    }
}
