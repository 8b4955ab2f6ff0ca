-- Files of cloud providers that are there in name only, drives mounted below a root, and why a walk left out what it did.

alter table source_files add column kind text not null default 'file' check (kind in ('file', 'stub', 'dataless'));
create index source_files_placeholders on source_files (source_id, uri) where kind <> 'file';

-- What the attempt saw: whether the file's bytes were on this machine, and which file it was (null: not recorded then).
alter table ingest_outcomes add column kind text not null default 'file' check (kind in ('file', 'stub', 'dataless'));
alter table ingest_outcomes add column inode numeric(20);

-- Folders below the root with a file system of their own at the last completed walk: their address, ending in '/', with
-- the file system's id. What lies below one is not taken for deleted while its drive is gone.
alter table sources add column mounts jsonb not null default '{}';

alter table stage_runs add column details jsonb not null default '{}'; -- what counts alone do not tell, such as reasons
