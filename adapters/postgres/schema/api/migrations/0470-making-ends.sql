-- A volume is being made only until its server is known to have run with it, or no server has it. Apis of earlier versions, which may run beside newer ones, do not
-- write that, so the database does: a volume that looked as if it were still being made would be deleted with its data when it is detached.
--
-- requires: end_volume_making

update volumes set making = null where making is not null and (attached_at_ms is not null or phase is null);

create trigger end_making before update on volumes for each row
  when (new.making is not null and (new.attached_at_ms is not null or new.phase is null))
  execute function end_volume_making();
