import type { VmGroupStatus } from './resource.ts';

const WAITING = 'waiting for a vCenter task slot';

/** The status of a group for which vCenter is kept busy with other groups' tasks. */
export function waitingForSlot(status: VmGroupStatus): VmGroupStatus {
  const said = (message: string) => (message.endsWith(WAITING) ? message : `${message}; ${WAITING}`);
  const ready = status.conditions?.find(({ type }) => type === 'Ready');
  if (ready?.reason !== 'Progressing' && ready?.reason !== 'Deleting') return status;
  const message = said(ready.message);
  const conditions = status.conditions?.map((each) => (each === ready ? { ...ready, message } : each));
  return { ...status, lastMessage: message, ...(conditions && { conditions }) };
}
