//! The Postgres side: blocks, replies, log-ins, and what holds for all bytes.

mod blocks;
mod logins;
mod pieces;
mod properties;
mod reply_reader;
mod words;
