-- Ends the making of a volume whose server has had it, or that no server has. Apis of earlier versions, which do not know the column `making`, change such rows, too.
create or replace function end_volume_making() returns trigger language plpgsql
  set search_path from current
as $$
begin
  new.making := null;
  return new;
end
$$;
