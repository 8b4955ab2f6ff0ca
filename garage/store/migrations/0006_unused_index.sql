-- The work list compares versions, which an index of undecided documents cannot answer; each rewrite paid for it.

drop index documents_undecided;
