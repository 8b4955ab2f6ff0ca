-- Whose documents are: authors and their identities, what git says of files, and which signal decided.

create table authors (
    id           bigint generated always as identity primary key,
    display_name text not null,
    is_self      boolean not null default false, -- the owner of this installation
    notes        text not null default '',
    created_at   timestamptz not null default now()
);
create unique index authors_one_self on authors (is_self) where is_self;

create table author_identities (
    id        bigint generated always as identity primary key,
    author_id bigint not null references authors on delete cascade,
    kind      text not null check (kind in ('email', 'git_email', 'git_name', 'name', 'phone', 'handle')),
    value     text not null,                      -- as compared: folded and without what does not tell people apart
    unique (kind, value)
);
create index author_identities_author on author_identities (author_id);

create table document_authors (
    document_id bigint not null references documents on delete cascade,
    author_id   bigint not null references authors on delete cascade,
    role        text not null check (role in ('author', 'committer', 'sender', 'recipient', 'cc')),
    confidence  real not null check (confidence between 0 and 1),
    evidence    text not null,
    primary key (document_id, author_id, role)
);
create index document_authors_author on document_authors (author_id, document_id);

-- A repository below the root of a source, and the last commit that its history was read to.
create table git_repositories (
    id        bigint generated always as identity primary key,
    source_id bigint not null references sources on delete cascade,
    path      text not null,                      -- its working tree's address below the root; '' is the root itself
    head      text not null,
    version   text not null,                      -- of the code that read it
    commits   bigint not null,
    read_at   timestamptz not null default now(),
    unique (source_id, path)
);
create table git_people (
    repository_id bigint not null references git_repositories on delete cascade,
    id            integer not null,
    name          text not null,
    email         text not null,
    primary key (repository_id, id)
);
-- Who committed a file, and how often; `people` and `commits` go together, the most commits first.
create table git_files (
    repository_id bigint not null references git_repositories on delete cascade,
    path          text not null,                  -- its address below the working tree
    people        integer[] not null,
    commits       integer[] not null,
    primary key (repository_id, path)
);

alter table documents
    add column attributed_as text,                -- version of rules, identities and history that decided; null: undecided
    add column signals       jsonb not null default '[]'; -- [{signal, said, evidence, won}, ...] in order of precedence
create index documents_undecided on documents (source_id) where attributed_as is null;
