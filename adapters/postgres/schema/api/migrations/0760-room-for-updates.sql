-- A request is written with others and then updated together with them, so each page needs room for a second version of all its rows. A version that finds
-- no room on its page needs an entry in every index.
alter table requests set (fillfactor = 50);
alter table open_requests set (fillfactor = 50);
