import { defaultOf, isFlag, OPTIONS } from './flags.ts';
import { FLAGS, GROUPS, type Group, VARIABLES } from './table.ts';

/** A setting of `vmwright run`, for the documentation. */
export interface SettingRow {
  readonly group: Group;
  /**
   * Name of the flag without the leading dashes. The config file uses the same name as key. Undefined if the setting
   * has only a variable.
   */
  readonly flag?: string;
  readonly variable?: string;
  /** Constant default, or a description of the default in words. */
  readonly byDefault: string;
  /** Whether `byDefault` is a value that the flag accepts. */
  readonly isConstant: boolean;
  readonly description: string;
}

/** Returns all settings of `vmwright run`, group by group. */
export function settingRows(): readonly SettingRow[] {
  const flags = Object.keys(OPTIONS)
    .filter(isFlag)
    .map((flag) => {
      const constant = defaultOf(flag);
      const { byDefault = 'none', ...described } = FLAGS[flag];
      return { ...described, flag, byDefault: constant || byDefault, isConstant: constant !== '' };
    });
  const variables = VARIABLES.map(({ isSecret: _, ...described }) => ({
    ...described,
    byDefault: '',
    isConstant: false,
  }));
  const all: readonly SettingRow[] = [...flags, ...variables];
  return GROUPS.flatMap((group) => all.filter((row) => row.group === group));
}
