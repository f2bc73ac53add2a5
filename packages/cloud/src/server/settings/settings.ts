import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { type Level, messageOf } from '@vmwright/core';
import { StartError } from '../errors.ts';
import { defaultBinary, type QemuSettings } from '../qemu/settings.ts';
import type { SimulatedSettings } from '../simulated/model.ts';
import { Fields } from './fields.ts';

export interface Address {
  readonly host: string;
  /** 0 for any that is free. */
  readonly port: number;
}

/** All that the cloud is told from outside, with every default filled in. */
export interface Settings extends FileSettings {
  readonly listen: Address;
  /** The SQLite file. */
  readonly data: string;
  readonly keysFile: string | undefined;
  /** The environment's CLOUD_API_KEYS. */
  readonly keys: string | undefined;
  readonly prohibitedFile: string | undefined;
  readonly driver: 'simulated' | 'qemu';
  readonly tls: { readonly certificateFile: string; readonly keyFile: string } | undefined;
  readonly logLevel: Level;
  readonly enableFaults: boolean;
}

/** What the config file says. */
export interface FileSettings {
  /** How long the idempotency key of a deleted server is kept. */
  readonly keepKeysMs: number;
  readonly observeEveryMs: number;
  /** How long a stop waits for answers under way. */
  readonly graceMs: number;
  readonly simulated: SimulatedSettings;
  readonly qemu: QemuSettings;
}

const DAY_MS = 24 * 60 * 60 * 1000;
const ANY = { min: 0, max: Number.POSITIVE_INFINITY };
const PERCENT = { min: 0, max: 100 };

/**
 * @param file JSON; none for the defaults. Paths in it are seen from its folder.
 * @throws StartError for a file that cannot be read or says what means nothing
 */
export function fileSettings(file: string | undefined, data: string): FileSettings {
  const fields = new Fields(file ?? 'config', file === undefined ? {} : read(file));
  const from = file === undefined ? '.' : dirname(file);
  const settings: FileSettings = {
    keepKeysMs: fields.number('keepKeysMs', 7 * DAY_MS, ANY),
    observeEveryMs: fields.number('observeEveryMs', 250, { min: 10, max: 60_000 }),
    graceMs: fields.number('graceMs', 10_000, ANY),
    simulated: fields.object('simulated', simulated),
    qemu: fields.object('qemu', (its) => qemu(its, from, data)),
  };
  fields.end();
  return settings;
}

function simulated(fields: Fields): SimulatedSettings {
  return {
    seed: fields.integer('seed', 1, { min: 0, max: 2 ** 32 - 1 }),
    bootMs: fields.range('bootMs', { min: 2_000, max: 5_000 }, ANY),
    stopMs: fields.range('stopMs', { min: 500, max: 1_500 }, ANY),
    failureProbability: fields.number('failureProbability', 0, { min: 0, max: 1 }),
    cpu: fields.object('cpu', (its) => ({
      ...its.ownRange({ min: 5, max: 80 }, PERCENT),
      periodMs: its.number('periodMs', 300_000, { min: 1, max: Number.POSITIVE_INFINITY }),
      noise: its.number('noise', 5, PERCENT),
    })),
  };
}

function qemu(fields: Fields, from: string, data: string): QemuSettings {
  const path = (name: string) => {
    const given = fields.text(name);
    return given === undefined ? undefined : resolve(from, given);
  };
  const binary = fields.text('binary') ?? defaultBinary();
  return {
    // A bare name is looked for on the PATH, anything else from the file's folder.
    binary: binary.includes('/') ? resolve(from, binary) : binary,
    dir: path('dir') ?? join(dirname(resolve(data)), 'machines'),
    memoryMb: fields.integer('memoryMb', 512, { min: 16, max: 1_048_576 }),
    cpus: fields.integer('cpus', 1, { min: 1, max: 256 }),
    accel: fields.choice('accel', ['auto', 'kvm', 'tcg']) ?? 'auto',
    cpu: fields.text('cpu'),
    image: path('image'),
    imageFormat: fields.choice('imageFormat', ['raw', 'qcow2']) ?? 'raw',
    args: fields.texts('args'),
  };
}

function read(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    const why = error instanceof SyntaxError ? `${file} is no JSON: ${error.message}` : messageOf(error);
    throw new StartError('SETTINGS', `the config cannot be read: ${why}`, { cause: error });
  }
}
