-- Tool loans. One row per loan; a tool is out as long as returned_on is empty.

create table tool (
    id          integer primary key,
    name        text not null unique,
    deposit     integer not null default 0,  -- pounds
    red_tag     text                         -- what is broken, if anything
);

create table loan (
    id          integer primary key,
    tool_id     integer not null references tool (id),
    member      text not null,
    lent_on     date not null,
    due_on      date not null,               -- lent_on + 14 days since January 2025
    renewed     boolean not null default false,
    returned_on date
);

-- Nobody can lend what is already out.
create unique index one_open_loan_per_tool on loan (tool_id) where returned_on is null;

-- What is late, and what it costs: 50 pence a day, at most ten pounds.
create view late as
select
    tool.name,
    loan.member,
    julianday('now') - julianday(loan.due_on) as days,
    min(10.0, 0.5 * (julianday('now') - julianday(loan.due_on))) as pounds
from loan
join tool on tool.id = loan.tool_id
where loan.returned_on is null
  and loan.due_on < date('now')
order by days desc;
