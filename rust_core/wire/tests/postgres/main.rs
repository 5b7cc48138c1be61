//! The Postgres side: blocks, answers, log-ins, and what holds for all bytes.

mod answers;
mod blocks;
mod logins;
mod pieces;
mod properties;
mod words;
