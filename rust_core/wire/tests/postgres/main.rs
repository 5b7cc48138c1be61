//! The Postgres side: blocks, answers, log-ins, and what holds for all bytes.

mod blocks;
mod logins;
mod pieces;
mod properties;
mod reply_reader;
mod words;
