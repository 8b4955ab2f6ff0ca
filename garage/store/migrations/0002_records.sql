-- A file can hold many documents (a mailbox, a database of messages), and a document parts that are cut on their own.

alter table documents rename column uri to file_uri;
alter table documents
    add column record text not null default '', -- addresses a document within its file; '': the file is one document
    add column parts  jsonb not null default '[]', -- [[start, end, sender, direction, quoted, at], ...]: cut instead of the content
    add column uri    text generated always as (case record when '' then file_uri else file_uri || '#' || record end) stored;
alter table documents drop constraint documents_source_id_uri_key;
-- The digest keeps the key within what a B-tree takes; a record's address is as long as its writer pleased.
create unique index documents_address on documents (source_id, file_uri, md5(record));

alter table chunks
    add column sender    text,                  -- who speaks, as the document names them
    add column direction text check (direction in ('sent', 'received')), -- seen from the owner
    add column quoted    boolean not null default false; -- words that the sender repeats and did not write

alter table sources drop constraint sources_kind_check;
alter table sources add constraint sources_kind_check check (kind in ('filesystem', 'messages'));
