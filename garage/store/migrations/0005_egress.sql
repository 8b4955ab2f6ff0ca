-- What content was handed to another program, and what was kept back: no text, no title, no path, no address of a file.
-- A row an hour for the same kind of transfer, so that a long backfill does not push out everything else.

create table egress_audits (
    id           bigint generated always as identity primary key,
    hour         timestamptz not null default date_trunc('hour', now(), 'UTC'),
    first_at     timestamptz not null default now(),
    last_at      timestamptz not null default now(),
    purpose      text not null check (purpose in ('embedding', 'facts', 'answers', 'mcp', 'rest')),
    destination  text not null check (length(destination) <= 300), -- scheme://host:port
    zone         text not null check (zone in ('local_process', 'loopback', 'lan', 'remote')),
    source       text not null,                  -- its name: what left is not forgotten when a source is removed
    corpus_class text not null,
    allowed      boolean not null,
    reason       text not null,
    transfers    bigint not null default 1,      -- batches
    items        bigint not null check (items > 0),
    unique (hour, purpose, destination, zone, source, corpus_class, allowed, reason)
);
create index egress_audits_latest on egress_audits (last_at, id);

-- The bounds hold whoever writes, and within the statement that writes: 30 days and 10,000 rows.
create function prune_egress_audits() returns trigger language plpgsql set search_path = garage as $$
begin
    delete from egress_audits where last_at < now() - interval '30 days';
    delete from egress_audits where (last_at, id) <=
        (select last_at, id from egress_audits order by last_at desc, id desc offset 10000 limit 1);
    return null;
end
$$;
create trigger egress_audits_prune after insert on egress_audits
    for each statement execute function prune_egress_audits();
