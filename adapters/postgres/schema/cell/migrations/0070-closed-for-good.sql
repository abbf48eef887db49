-- requires: cell_shut
-- Servers that were closed before assignments had numbers have revision 0. They stay closed for good: a scheduler of that time may rely on it,
-- and would place the server in another cell while a newer one opens this cell to it again. Cells that such a scheduler closes from now on are
-- closed for good by cell_shut.
update servers set revision = 2147483647 where status = 'CLOSED' and revision < 2147483647;
