//! Samples around one story: each is its history with something in it said otherwise.

use serde_json::Value;

use super::forger::World;
use super::samples::Story;
use super::tampered::First;
use super::tampered::Sample;

/// A story and the samples that were made of it so far.
pub struct Table {
    pub story: Story,
    pub rows: Vec<Sample>,
}

impl Table {
    pub fn of(story: Story) -> Self {
        let rows = Vec::new();
        Self { story, rows }
    }

    /// The story's history.
    pub fn world(&self) -> World {
        World::of(&self.story.lines)
    }

    pub fn push(&mut self, name: &'static str, done: &'static str, world: &World, first: First) {
        self.rows.push(Sample::forged(name, done, world, first));
    }

    /// The payload of one event says something else, which is found there.
    pub fn edited(
        &mut self,
        name: &'static str,
        done: &'static str,
        at: &str,
        edit: impl FnOnce(&mut Value),
        rule: &'static str,
    ) {
        let edit = |body: &mut Value| edit(&mut body["data"]);
        self.rewritten(name, done, at, edit, (at, rule));
    }

    /// The body of one event says something else, which is found at the same or at a later one.
    pub fn rewritten(
        &mut self,
        name: &'static str,
        done: &'static str,
        at: &str,
        edit: impl FnOnce(&mut Value),
        (shows_at, rule): (&str, &'static str),
    ) {
        let mut world = self.world();
        edit(&mut world.items[self.story.at(at)].body);
        self.push(name, done, &world, Some((self.story.at(shows_at), rule)));
    }
}
