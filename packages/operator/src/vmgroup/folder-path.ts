import type { schema } from '@vmwright/runtime';

/** vCenter's own limit of a name. */
const LONGEST_STEP = 80;
const MOST_STEPS = 8;
export const LONGEST_PATH = 255;

/** The rules of `placement.folder` for the API server. The whole datacenter is not a folder that groups may share. */
export const FOLDER_RULES: readonly schema.Rule[] = [
  {
    rule: "self.matches('^/?[^/]+(/[^/]+)*/?$')",
    message: 'folder is a path such as a/b: it names a folder, and has no empty steps',
  },
  {
    rule: "!self.matches('(^|/)[.]{1,2}(/|$)')",
    message: "folder must not have the steps '.' and '..'",
  },
  {
    rule: `!self.matches('^/?([^/]+/){${MOST_STEPS}}[^/]')`,
    message: `folder has at most ${MOST_STEPS} steps`,
  },
  {
    rule: `!self.matches('[^/]{${LONGEST_STEP + 1}}')`,
    message: `each step of folder has at most ${LONGEST_STEP} characters`,
  },
];

/** The same for a path that the API server has not seen. @returns what is wrong with it */
export function folderProblem(path: string): string | undefined {
  const steps = path.replace(/^\/|\/$/g, '').split('/');
  if (path.length > LONGEST_PATH) return `has more than ${LONGEST_PATH} characters`;
  if (steps.includes('')) return 'must name a folder, and has no empty steps';
  if (steps.includes('.') || steps.includes('..')) return "must not have the steps '.' and '..'";
  if (steps.length > MOST_STEPS) return `has more than ${MOST_STEPS} steps`;
  if (steps.some((step) => step.length > LONGEST_STEP))
    return `has a step of more than ${LONGEST_STEP} characters`;
  return undefined;
}
