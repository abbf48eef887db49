-- Turns the changes at these positions into changes that ledger_apply refuses, because they expect a generation that no consumer reaches.
create or replace function cell_without(changes ledger_batch, positions int[]) returns ledger_batch
  language plpgsql
as $$
declare
  step_expected int[] := changes.step_expected;
  at int;
begin
  foreach at in array positions loop
    step_expected[coalesce(changes.change_step_end[at - 1], 0) + 1] := 2147483647;
  end loop;
  changes.step_expected := step_expected;
  return changes;
end
$$;
