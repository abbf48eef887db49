-- Which hosts each cell had when an api last saw it: what is said of a cell that does not answer. Written only when a cell's hosts change.
create table host_map (
  cell text not null,
  host text not null,
  primary key (cell, host)
);
