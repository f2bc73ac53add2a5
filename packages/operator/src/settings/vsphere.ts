import type { Flag } from './flags.ts';
import {
  type Environment,
  MIN_INTERVAL_MS,
  parseBoolean,
  parseInteger,
  parseTime,
  required,
  SettingsError,
} from './values.ts';

export interface VsphereSettings {
  /** vCenter for all namespaces that the file does not assign to another vCenter; undefined if only the file is given. */
  readonly vcenter: VcenterSettings | undefined;
  /** File with several vCenters and their namespaces. */
  readonly file: string | undefined;
  readonly placement: PlacementSettings;
  readonly templates: TemplateSettings;
  readonly timeoutMs: number;
  /** Maximum number of clones, and also of other tasks, that run at the same time in each vCenter. */
  readonly concurrency: number;
  readonly sweepMs: number;
}

/** One vCenter and its credentials. */
export interface VcenterSettings {
  readonly name: string;
  readonly server: string;
  /** Credentials, or a folder with the files VC_USER and VC_PASS of a mounted Secret. */
  readonly credentials:
    | { readonly username: string; readonly password: string }
    | { readonly folder: string };
  /** File with the CA certificates to trust. */
  readonly ca?: string | undefined;
  /** SHA-256 fingerprint of its certificate. */
  readonly thumbprint?: string | undefined;
  /** Disables the verification of its certificate. */
  readonly insecure?: boolean | undefined;
  /** Namespaces whose VmGroups may use this vCenter. @default all */
  readonly namespaces?: readonly string[] | undefined;
  /** Overrides `TemplateSettings.folder` for this vCenter. */
  readonly templateFolder?: string | undefined;
  /** Overrides `TemplateSettings.allowMachines` for this vCenter. */
  readonly allowVmAsTemplate?: boolean | undefined;
  readonly placement?: PlacementSettings | undefined;
}

/** Templates that machines may be cloned from. */
interface TemplateSettings {
  /** Path of the folder with the templates. @default anywhere in the datacenter */
  readonly folder?: string | undefined;
  /** Whether machines that are not templates may be cloned too. */
  readonly allowMachines: boolean;
}

/** Placement of machines if the VmGroup does not specify it. */
interface PlacementSettings {
  readonly datacenter?: string;
  readonly folder?: string;
  readonly cluster?: string;
  readonly resourcePool?: string;
  readonly datastore?: string;
  readonly storagePolicy?: string;
}

/** @throws SettingsError */
export function parseVsphereSettings(
  text: (flag: Flag) => string,
  environment: Environment,
): VsphereSettings {
  const file = text('vcenters') || undefined;
  const isGiven = environment.VC_HOST !== undefined && environment.VC_HOST !== '';
  return {
    vcenter: file === undefined || isGiven ? parseVcenter(text, environment) : undefined,
    file,
    placement: parsePlacement(text),
    templates: {
      folder: text('vsphere-template-folder') || undefined,
      allowMachines: parseBoolean('vsphere-allow-vm-as-template', text('vsphere-allow-vm-as-template')),
    },
    timeoutMs: parseTime('--vsphere-timeout', text('vsphere-timeout'), MIN_INTERVAL_MS),
    concurrency: parseInteger('--vsphere-concurrency', text('vsphere-concurrency'), 1, 1_000),
    sweepMs: parseTime('--vmgroup-sweep', text('vmgroup-sweep'), MIN_INTERVAL_MS),
  };
}

function parseVcenter(text: (flag: Flag) => string, environment: Environment): VcenterSettings {
  const { VC_HOST, VC_USER, VC_PASS, VC_CREDENTIALS, VC_CA, VC_THUMBPRINT } = environment;
  const server = required(
    'VC_HOST',
    VC_HOST,
    'the name or address of vCenter, such as vcenter.example.com, or disable VmGroups with --controllers=vm',
  );
  if (server.includes('@'))
    throw new SettingsError('VC_HOST contains a user or a password; set VC_USER and VC_PASS instead');
  return {
    name: 'default',
    server,
    credentials: VC_CREDENTIALS
      ? { folder: VC_CREDENTIALS }
      : {
          username: required('VC_USER', VC_USER, 'the user of vCenter, from a Secret'),
          password: required('VC_PASS', VC_PASS, 'the password of VC_USER, from a Secret'),
        },
    ca: VC_CA || undefined,
    thumbprint: VC_THUMBPRINT || undefined,
    insecure: parseBoolean('insecure', text('insecure')),
  };
}

function parsePlacement(text: (flag: Flag) => string): PlacementSettings {
  const given = (name: keyof PlacementSettings, flag: Flag): PlacementSettings =>
    text(flag) === '' ? {} : { [name]: text(flag) };
  return {
    ...given('datacenter', 'vsphere-datacenter'),
    ...given('folder', 'vsphere-folder'),
    ...given('cluster', 'vsphere-cluster'),
    ...given('resourcePool', 'vsphere-resource-pool'),
    ...given('datastore', 'vsphere-datastore'),
    ...given('storagePolicy', 'vsphere-storage-policy'),
  };
}
