import { ageText } from '../../age.ts';
import { table } from '../../table.ts';
import type { AnyCondition } from '../fields.ts';
import type { Paint } from '../output.ts';
import type { TreeNode } from '../tree.ts';

export interface Description {
  readonly tree: TreeNode;
  /** Conditions of the object that report a problem. */
  readonly problems: readonly AnyCondition[];
}

/** @param now milliseconds since 1970 */
export function renderDescription({ tree, problems }: Description, now: number, paint: Paint): string {
  const rows = [['NAME', 'READY', 'REASON', 'SINCE', 'MESSAGE'], ...rowsOf(tree, '', '', now)];
  const [head = '', ...lines] = table(rows).split('\n');
  const text = [paint('bold', head), ...lines].join('\n');
  const others = problems.filter(({ message }) => message !== tree.message); // the tree already shows the message of Ready
  if (others.length === 0) return text;
  return `${text}\n\n${paint('bold', 'Problems')}\n${others.map(problemText).join('\n')}`;
}

function problemText({ type, status, reason, message }: AnyCondition): string {
  return `  ${type} is ${status} (${reason})\n    ${message || 'no message'}`;
}

/** @param first prefix of the node's own line @param rest prefix of the lines below it */
function rowsOf(node: TreeNode, first: string, rest: string, now: number): readonly (readonly string[])[] {
  const { label, ready, reason, since, message, children } = node;
  const age = since === '' ? '' : ageText(now - Date.parse(since));
  return [
    [`${first}${label}`, ready || '-', reason || '-', age || '-', message],
    ...children.flatMap((child, index) => {
      const isLast = index === children.length - 1;
      return rowsOf(child, `${rest}${isLast ? '└─ ' : '├─ '}`, `${rest}${isLast ? '   ' : '│  '}`, now);
    }),
  ];
}
