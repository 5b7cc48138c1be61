//! The description of a trial from Python: dictionaries, checked field by field.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use history::{Exclusion, JudgedBy, Promises, TrialName};
use load::lock_client::{LockClientSpec, extendable};
use load::{Address, AfterLease, ArrivalKind, Connections, Distribution, KeyChoice, KeyOrder, Pace, Poll};
use load::{PostgresServer, Process, RedisServer, Speaks, Stage};
use locks::{ArgValue, GuardKind, Lease, Nanos, Retry, RetryKind, Strategy};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use wire::postgres::Prepare;
use wire::{CompareAndDelete, Protocol};

use crate::faults::{fault_periods, faults};

/// The field `name` of `dict`, or a `ValueError` that says which field is missing or of which wrong type it is.
pub(crate) fn field<'py, T: FromPyObjectOwned<'py>>(dict: &Bound<'py, PyDict>, name: &str) -> PyResult<T> {
    let value = dict
        .get_item(name)?
        .ok_or_else(|| PyValueError::new_err(format!("`{name}` is missing")))?;
    value.extract().map_err(|_| {
        let given = value.get_type().to_string();
        PyValueError::new_err(format!("`{name}` is of the wrong type ({given}) or out of range"))
    })
}

pub(crate) fn nanos(dict: &Bound<'_, PyDict>, name: &str) -> PyResult<Nanos> {
    field(dict, name).map(Nanos)
}

pub(crate) fn dict<'py>(parent: &Bound<'py, PyDict>, name: &str) -> PyResult<Bound<'py, PyDict>> {
    field::<Bound<'py, PyAny>>(parent, name)?
        .cast_into()
        .map_err(|_| PyValueError::new_err(format!("`{name}` must be a dictionary")))
}

/// The value of `choices` that the field names.
fn choice<T: Copy>(dict: &Bound<'_, PyDict>, name: &str, choices: &[(&str, T)]) -> PyResult<T> {
    let given: String = field(dict, name)?;
    let found = choices
        .iter()
        .find(|(known, _)| *known == given)
        .map(|(_, value)| *value);
    found.ok_or_else(|| {
        let known: Vec<&str> = choices.iter().map(|(known, _)| *known).collect();
        PyValueError::new_err(format!("`{name}` is {given:?}; it must be one of {}", known.join(", ")))
    })
}

fn stages(spec: &Bound<'_, PyDict>) -> PyResult<Vec<Stage>> {
    if !spec.contains("stages")? {
        return Ok(Vec::new());
    }
    field::<Vec<Bound<'_, PyAny>>>(spec, "stages")?
        .into_iter()
        .map(|stage| {
            let stage: Bound<'_, PyDict> = stage
                .cast_into()
                .map_err(|_| PyValueError::new_err("`stages` must hold dictionaries"))?;
            Ok(Stage {
                from: field(&stage, "from")?,
                to: field(&stage, "to")?,
                length: nanos(&stage, "length_ns")?,
            })
        })
        .collect()
}

pub(crate) fn trial_spec(spec: &Bound<'_, PyDict>) -> PyResult<load::TrialSpec> {
    let strategy: String = field(spec, "strategy")?;
    let strategy = Strategy::named(&strategy, &arguments(&dict(spec, "args")?)?).map_err(value_error)?;
    let servers = servers(spec)?;
    Ok(load::TrialSpec {
        strategy,
        lock: locks::Spec {
            servers: u16::try_from(servers.len()).map_err(|_| PyValueError::new_err("too many `servers`"))?,
            lease: Lease::new(field(spec, "ttl_ms")?).map_err(value_error)?,
            reply_timeout: nanos(spec, "reply_timeout_ns")?,
            retry: retry(&dict(spec, "retry")?)?,
        },
        servers,
        connections: connections(&dict(spec, "connections")?)?,
        client_name: field(spec, "client_name")?,
        key_prefix: field::<String>(spec, "key_prefix")?.into_bytes(),
        keys: field(spec, "keys")?,
        key_choice: key_choice(&dict(spec, "key_choice")?)?,
        keys_per_grant: field(spec, "keys_per_grant")?,
        key_order: choice(
            spec,
            "key_order",
            &[("random", KeyOrder::Random), ("sorted", KeyOrder::Sorted)],
        )?,
        read_share: field(spec, "read_share")?,
        nesting: field(spec, "nesting")?,
        hold: distribution(&dict(spec, "hold")?)?,
        think: distribution(&dict(spec, "think")?)?,
        after_lease: choice(
            spec,
            "after_lease",
            &[("continue", AfterLease::Continue), ("stop", AfterLease::Stop)],
        )?,
        pace: pace(&dict(spec, "loop")?)?,
        concurrency: field(spec, "concurrency")?,
        warmup: nanos(spec, "warmup_ns")?,
        until_steady: spec.contains("until_steady")? && field(spec, "until_steady")?,
        stages: stages(spec)?,
        duration: field::<Option<u64>>(spec, "duration_ns")?.map_or(Nanos::NEVER, Nanos),
        drain: nanos(spec, "drain_ns")?,
        dies: field(spec, "dies")?,
        seed: field(spec, "seed")?,
        threads: field(spec, "threads")?,
        process: process(spec)?,
        cores: field(spec, "cores")?,
        poll: choice(spec, "poll", &[("block", Poll::Block), ("spin", Poll::Spin)])?,
        least_belief: nanos(spec, "least_belief_ns")?,
        faults: faults(spec)?,
        fault_periods: fault_periods(spec)?,
        guard: guard(spec)?,
    })
}

/// Which part of a trial of several processes this one runs; `None`: all of it.
fn process(spec: &Bound<'_, PyDict>) -> PyResult<Option<Process>> {
    if !spec.contains("process")? {
        return Ok(None);
    }
    let given = dict(spec, "process")?;
    Ok(Some(Process {
        index: field(&given, "index")?,
        of: field(&given, "of")?,
    }))
}

fn guard(spec: &Bound<'_, PyDict>) -> PyResult<Option<load::GuardSpec>> {
    if !spec.contains("guard")? {
        return Ok(None);
    }
    let given = dict(spec, "guard")?;
    let kinds = [
        ("counter", GuardKind::Counter),
        ("stock", GuardKind::Stock),
        ("transfer", GuardKind::Transfer),
        ("fenced-write", GuardKind::FencedWrite),
    ];
    Ok(Some(load::GuardSpec {
        kind: choice(&given, "kind", &kinds)?,
        server: server_spec(&dict(&given, "server")?)?,
    }))
}

/// Where the trial records its events, if it does.
pub(crate) fn recording(spec: &Bound<'_, PyDict>) -> PyResult<Option<load::Recording>> {
    if !spec.contains("recording")? {
        return Ok(None);
    }
    let given = dict(spec, "recording")?;
    let judges = [
        ("belief", JudgedBy::Belief),
        ("effects", JudgedBy::Effects),
        ("guard", JudgedBy::Guard),
    ];
    Ok(Some(load::Recording {
        files: field(&given, "files")?,
        lock: field(&given, "lock")?,
        promises: Promises {
            exclusion: exclusion(&given)?,
            wake_ups: field(&given, "wake_ups")?,
            judged_by: choice(&given, "judged_by", &judges)?,
            ..Promises::default()
        },
        trial: TrialName {
            cell: field(&given, "cell")?,
            trial: field(&given, "trial")?,
            keys_per_grant: field(spec, "keys_per_grant")?,
        },
    }))
}

/// How far the lock promises to limit its holders.
pub(crate) fn exclusion(spec: &Bound<'_, PyDict>) -> PyResult<Exclusion> {
    let exclusions = [
        ("nothing", Exclusion::Nothing),
        ("while-nobody-outlives", Exclusion::WhileNobodyOutlives),
        ("always", Exclusion::Always),
    ];
    choice(spec, "exclusion", &exclusions)
}

pub(crate) fn lock_client_spec(spec: &Bound<'_, PyDict>) -> PyResult<LockClientSpec> {
    let strategy: String = field(spec, "strategy")?;
    let strategy = Strategy::named(&strategy, &arguments(&dict(spec, "args")?)?).map_err(value_error)?;
    Ok(LockClientSpec {
        strategy: extendable(strategy),
        servers: servers(spec)?,
        client_name: field(spec, "client_name")?,
        reply_timeout: nanos(spec, "reply_timeout_ns")?,
        own_connections: field(spec, "own_connections")?,
    })
}

fn servers(spec: &Bound<'_, PyDict>) -> PyResult<Vec<load::ServerSpec>> {
    let servers = field::<Vec<Bound<'_, PyAny>>>(spec, "servers")?;
    servers
        .into_iter()
        .map(|server| match server.cast_into() {
            Ok(server) => server_spec(&server),
            Err(_) => Err(PyValueError::new_err("`servers` must hold dictionaries")),
        })
        .collect()
}

pub(crate) fn arguments(args: &Bound<'_, PyDict>) -> PyResult<Vec<(String, ArgValue)>> {
    let mut arguments = Vec::new();
    for (name, value) in args {
        let name: String = name.extract()?;
        // Python's bool is also an int, so bool is tried first.
        let value = if let Ok(value) = value.extract::<bool>() {
            ArgValue::Bool(value)
        } else if let Ok(value) = value.extract::<i64>() {
            ArgValue::Int(value)
        } else if let Ok(value) = value.extract::<f64>() {
            ArgValue::Float(value)
        } else if let Ok(value) = value.extract::<String>() {
            ArgValue::Text(value)
        } else {
            return Err(PyValueError::new_err(format!(
                "argument `{name}` must be a number, a text or a boolean"
            )));
        };
        arguments.push((name, value));
    }
    Ok(arguments)
}

fn server_spec(server: &Bound<'_, PyDict>) -> PyResult<load::ServerSpec> {
    let address = if let Some(path) = field::<Option<PathBuf>>(server, "unix")? {
        Address::Unix(path)
    } else {
        let host: IpAddr = field::<String>(server, "host")?
            .parse()
            .map_err(|_| PyValueError::new_err("`host` must be a numeric address: names are resolved by Python"))?;
        Address::Tcp(SocketAddr::new(host, field(server, "port")?))
    };
    let speaks = match field::<String>(server, "kind")?.as_str() {
        "redis" => Speaks::Redis(redis_server(server)?),
        "postgres" => Speaks::Postgres(postgres_server(server)?),
        _ => return Err(PyValueError::new_err("a server must be of kind redis or postgres")),
    };
    let rtt = match server.get_item("rtt")? {
        Some(_) => distribution(&dict(server, "rtt")?)?,
        None => Distribution::Fixed(Nanos::ZERO),
    };
    Ok(load::ServerSpec { address, speaks, rtt })
}

fn postgres_server(server: &Bound<'_, PyDict>) -> PyResult<PostgresServer> {
    let settings = dict(server, "settings")?;
    Ok(PostgresServer {
        user: field(server, "user")?,
        password: field(server, "password")?,
        database: field(server, "database")?,
        table: field(server, "table")?,
        settings: settings
            .iter()
            .map(|(name, value)| Ok((name.extract()?, value.extract()?)))
            .collect::<PyResult<_>>()
            .map_err(|_| PyValueError::new_err("`settings` must map names to texts"))?,
        prepare: choice(
            server,
            "prepare",
            &[("named", Prepare::Named), ("unnamed", Prepare::Unnamed)],
        )?,
    })
}

fn redis_server(server: &Bound<'_, PyDict>) -> PyResult<RedisServer> {
    let protocol: u8 = field(server, "protocol")?;
    Ok(RedisServer {
        username: field(server, "username")?,
        password: field(server, "password")?,
        db: field(server, "db")?,
        protocol: match protocol {
            2 => Protocol::Resp2,
            3 => Protocol::Resp3,
            _ => return Err(PyValueError::new_err("`protocol` must be 2 or 3")),
        },
        compare_and_delete: choice(
            server,
            "compare_and_delete",
            &[
                ("script", CompareAndDelete::Script),
                ("delifeq", CompareAndDelete::DelIfEq),
                ("delex", CompareAndDelete::DelEx),
            ],
        )?,
    })
}

pub(crate) fn retry(retry: &Bound<'_, PyDict>) -> PyResult<Retry> {
    Ok(Retry {
        kind: RetryKind::named(&field::<String>(retry, "kind")?).map_err(value_error)?,
        base: nanos(retry, "base_ns")?,
        factor: field(retry, "factor")?,
        cap: nanos(retry, "cap_ns")?,
        max_attempts: field(retry, "max_attempts")?,
        max_wait: nanos(retry, "max_wait_ns")?,
    })
}

fn connections(connections: &Bound<'_, PyDict>) -> PyResult<Connections> {
    match field::<String>(connections, "kind")?.as_str() {
        "shared" => Ok(Connections::SharedByClients(field(connections, "count")?)),
        "per-client" => Ok(Connections::PerClient),
        _ => Err(PyValueError::new_err(
            "`connections` must be of kind shared or per-client",
        )),
    }
}

fn key_choice(keys: &Bound<'_, PyDict>) -> PyResult<KeyChoice> {
    match field::<String>(keys, "kind")?.as_str() {
        "uniform" => Ok(KeyChoice::Uniform),
        "zipf" => Ok(KeyChoice::Zipf { s: field(keys, "s")? }),
        "single" => Ok(KeyChoice::Single),
        _ => Err(PyValueError::new_err(
            "`key_choice` must be of kind uniform, zipf or single",
        )),
    }
}

pub(crate) fn distribution(length: &Bound<'_, PyDict>) -> PyResult<Distribution> {
    match field::<String>(length, "kind")?.as_str() {
        "fixed" => Ok(Distribution::Fixed(nanos(length, "value_ns")?)),
        "exp" => Ok(Distribution::Exp {
            mean: nanos(length, "mean_ns")?,
        }),
        "lognormal" => Ok(Distribution::LogNormal {
            median: nanos(length, "median_ns")?,
            sigma: field(length, "sigma")?,
        }),
        "uniform" => Ok(Distribution::Uniform {
            low: nanos(length, "low_ns")?,
            high: nanos(length, "high_ns")?,
        }),
        "quantiles" => Ok(Distribution::Quantiles {
            points: field::<Vec<(f64, u64)>>(length, "points")?
                .into_iter()
                .map(|(deviate, ns)| (deviate, Nanos(ns)))
                .collect(),
        }),
        _ => Err(PyValueError::new_err(
            "a duration must be of kind fixed, exp, lognormal, uniform or quantiles",
        )),
    }
}

fn pace(pace: &Bound<'_, PyDict>) -> PyResult<Pace> {
    match field::<String>(pace, "kind")?.as_str() {
        "closed" => Ok(Pace::Closed),
        "open" => Ok(Pace::Open {
            arrivals: choice(
                pace,
                "arrivals",
                &[("constant", ArrivalKind::Constant), ("poisson", ArrivalKind::Poisson)],
            )?,
            rate_per_s: field(pace, "rate_per_s")?,
            max_in_flight: field(pace, "max_in_flight")?,
        }),
        _ => Err(PyValueError::new_err("`loop` must be of kind closed or open")),
    }
}

pub(crate) fn value_error(error: impl std::error::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}
