-- How often a request has gone from one cell to another. A cell that a request has left is closed to its server under the number that the
-- request had then, and takes the server again under a higher one.
alter table requests add column assignment int not null default 0;
