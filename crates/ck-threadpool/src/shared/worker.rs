//! The workers' side: wait for an order, take part, say so.

use super::Shared;
use crate::sync::Ordering;
use crate::word::{OrderWord, ProgressWord};

impl Shared {
    /// The life of the worker that is member `index`.
    pub(crate) fn work(&self, index: usize) {
        let mut last = OrderWord(0);
        while let Some(word) = self.next_order(index, last) {
            last = word;
            let job = self.front.job.with(|cell| {
                // SAFETY: this thread is a member of the team of the generation it has just seen
                // (`next_order` checked both in one word), so the job was written before, and will
                // not be written again before this thread finishes.
                unsafe { *cell }
            });
            self.take_part(&job, index, word.size());
            self.finish(word.size(), job.start);
        }
    }

    /// Waits for a dispatch after `last` in which member `index` takes part; `None` at shutdown.
    fn next_order(&self, index: usize, last: OrderWord) -> Option<OrderWord> {
        let slot = &self.slots[index];
        let budget = self.idle_budget(last.size().max(index + 1));
        let is_news = |word: OrderWord| {
            word.shutdown() || (word.size() > index && word.generation() != last.generation())
        };
        // Acquire: the job comes with the word. A pause ends the polling without news.
        let poll = || {
            let word = OrderWord(self.front.order.load(Ordering::Acquire));
            (word.paused() || is_news(word)).then_some(word)
        };
        let word = loop {
            if let Some(word) = self.poll(index, budget, poll)
                && is_news(word)
            {
                break word;
            }
            slot.parker.announce();
            // Release: with the mark goes the announcement. Acquire: as above.
            let word = self.front.order.fetch_add(OrderWord::ONE_SLEEPER, Ordering::AcqRel);
            if is_news(OrderWord(word)) {
                slot.parker.stay_awake();
            } else if self.forked() {
                return None;
            } else {
                slot.parker.sleep();
            }
            let word = self.front.order.fetch_sub(OrderWord::ONE_SLEEPER, Ordering::AcqRel);
            if is_news(OrderWord(word)) {
                break OrderWord(word);
            }
        };
        (!word.shutdown()).then_some(word)
    }

    /// Says that one worker has left the dispatch. It may not touch the job any more after this.
    fn finish(&self, size: usize, start: ProgressWord) {
        // Release: what this worker did goes to the caller.
        let word = self.front.progress.fetch_add(ProgressWord::ONE_FINISHED, Ordering::AcqRel);
        let word = ProgressWord(word.wrapping_add(ProgressWord::ONE_FINISHED));
        if word.has(ProgressWord::BARRIER_SLEEPERS) {
            // They may wait for an arrival that will not come: let them look again.
            self.wake(0..size);
        } else if word.has(ProgressWord::JOIN_SLEEPER) && word.finished_since(start) == size - 1 {
            self.wake(0..1);
        }
    }
}
