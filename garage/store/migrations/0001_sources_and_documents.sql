-- Sources, what the walk saw of them, the documents made of that, and how each attempt ended.

create table sources (
    id            bigint generated always as identity primary key,
    slug          text not null unique check (slug ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
    kind          text not null default 'filesystem' check (kind in ('filesystem')),
    root          text not null,
    default_class text not null default 'document' check (default_class in ('document', 'code', 'communication')),
    default_trust text not null default 'authored' check (default_trust in ('authored', 'received', 'reference')),
    egress        text not null default 'local_only' check (egress in ('local_only', 'lan', 'remote')),
    settings      jsonb not null default '{}',   -- what else of the configuration decides the walk
    active        boolean not null default true, -- false: retired; kept as a partition, neither walked nor searched
    root_device   bigint,                        -- st_dev of the root at the last completed walk
    walked_at     timestamptz,                   -- end of the last completed walk
    walk_seconds  real,                          -- how long that walk took
    created_at    timestamptz not null default now()
);

-- What the last completed walk saw. `uri` is the path below the root with undecodable bytes, control characters and '%'
-- written %XX; it is the file's address everywhere.
create table source_files (
    source_id bigint not null references sources on delete cascade,
    uri       text not null,
    size      bigint not null,
    mtime_ns  bigint not null,
    inode     numeric(20) not null,              -- unsigned 64 bits
    extractor text not null,
    primary key (source_id, uri)
);

create table documents (
    id              bigint generated always as identity primary key,
    source_id       bigint not null references sources on delete cascade,
    uri             text not null,
    title           text not null,
    kind            text not null,               -- prose, markdown, tabular, code:<language>: decides the chunking
    corpus_class    text not null check (corpus_class in ('document', 'code', 'communication')),
    trust_tier      text not null check (trust_tier in ('authored', 'received', 'reference')),
    content         text not null,               -- the canonical mirror; every offset is a code point of it
    body_start      integer not null default 0 check (body_start >= 0), -- content before it (front matter) is not chunked
    meta            jsonb not null default '{}',
    source_sha256   bytea not null check (length(source_sha256) = 32),
    content_sha256  bytea not null check (length(content_sha256) = 32),
    byte_size       bigint not null,
    mtime_ns        bigint not null,
    extractor       text not null,
    extractor_fingerprint text not null,
    chunked_as      text,                        -- chunker signature and code digest of the chunks it has now
    chunked_sha256  bytea,                       -- content_sha256 those chunks were made from
    chunks_dropped  integer not null default 0,  -- chunks beyond the cap of a document
    ingested_at     timestamptz not null default now(),
    unique (source_id, uri)
);

-- One row an attempt: every file that was opened, with how that ended. A file is opened again when its stat or its
-- extractor's fingerprint differs from this row, or when the outcome is one that time can mend (unreadable, deferred).
create table ingest_outcomes (
    source_id             bigint not null references sources on delete cascade,
    uri                   text not null,
    outcome               text not null check (outcome in ('ok', 'no_text', 'rejected', 'encrypted', 'unsupported',
                              'too_large', 'timeout', 'memory', 'error', 'unreadable', 'placeholder', 'deferred')),
    reason                text not null default '',
    size                  bigint not null,
    mtime_ns              bigint not null,
    source_sha256         bytea,                 -- null when the file could not be read
    extractor_fingerprint text not null,
    at                    timestamptz not null default now(),
    primary key (source_id, uri)
);
create index ingest_outcomes_failed on ingest_outcomes (source_id, outcome) where outcome <> 'ok';

create sequence lexical_changes;

create table chunks (
    id            bigint generated always as identity primary key,
    document_id   bigint not null references documents on delete cascade,
    source_id     bigint not null references sources on delete cascade,
    ord           integer not null check (ord >= 0),
    text          text not null,                 -- exactly content[char_start:char_end] of its document
    char_start    integer not null,
    char_end      integer not null check (char_end > char_start),
    start_line    integer not null,              -- 1-based and inclusive, lines of the mirror
    end_line      integer not null check (end_line >= start_line),
    heading_path  text,
    token_count   integer not null,
    chunker       text not null,
    chunk_sha256  bytea not null check (length(chunk_sha256) = 32),
    input_sha256  bytea not null check (length(input_sha256) = 32), -- title, heading path and text: all a model may be given
    lexical_prose text,                          -- what keyword search sees: stemmed
    lexical_code  text,                          -- what keyword search sees: not stemmed, identifiers with their parts
    lexical_seq   bigint not null default nextval('lexical_changes'), -- moves whenever one of these two texts changes
    unique (document_id, ord) deferrable initially immediate, -- an edit moves kept passages in one statement
    check (num_nonnulls(lexical_prose, lexical_code) = 1)
);
-- Covers the work list of every model and the digest of a partition without touching the table.
create index chunks_source on chunks (source_id, id) include (input_sha256);
create index chunks_lexical_seq on chunks (lexical_seq);

-- The tables lexical_<name> that hold BM25 indexes (garage/store/lexical.py): passages with after < lexical_seq <= newest.
create table lexical_segments (
    name     text primary key check (name in ('base', 'recent')),
    after    bigint not null,
    newest   bigint not null,
    passages bigint not null,
    built_at timestamptz not null default now()
);

create table embedding_models (
    id           bigint generated always as identity primary key,
    slug         text not null unique,
    table_name   text not null unique check (table_name ~ '^emb_[a-z0-9_]+$' and length(table_name) <= 48),
    dims         integer not null check (dims > 0),
    stored_dims  integer not null check (stored_dims between 1 and dims),
    storage      text not null check (storage in ('vector', 'halfvec', 'bit')),
    fingerprint  text not null,                  -- weights, templates, context and truncation: what makes the vector space
    is_default   boolean not null default false, -- answers searches; moves only when its successor is complete
    indexed_at   timestamptz,                    -- when its HNSW index was built; null: not yet
    created_at   timestamptz not null default now(),
    check (storage <> 'vector' or stored_dims <= 2000),
    check (storage <> 'halfvec' or stored_dims <= 4000)
);
create unique index embedding_models_one_default on embedding_models (is_default) where is_default;

-- One row a stage of a run: progress while it goes on, counts and data version when it ended.
create table stage_runs (
    id           bigint generated always as identity primary key,
    source_id    bigint not null references sources on delete cascade,
    stage        text not null,
    run_id       text,                           -- the Dagster run, where one asked for it
    started_at   timestamptz not null default now(),
    heartbeat_at timestamptz not null default now(),
    finished_at  timestamptz,
    done         bigint not null default 0,
    total        bigint,
    counts       jsonb not null default '{}',
    data_version text,
    error        text
);
create index stage_runs_latest on stage_runs (source_id, stage, id desc);

-- A source whose deletions were refused; the row goes when the files return or the deletion is allowed.
create table refusals (
    source_id  bigint primary key references sources on delete cascade,
    cause      text not null,
    known      bigint not null,
    vanished   bigint not null,
    detail     text not null,
    refused_at timestamptz not null default now()
);
