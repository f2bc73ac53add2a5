import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { type Level, messageOf } from '@vmwright/core';
import { StartError } from '../errors.ts';
import { defaultBinary, type QemuSettings } from '../qemu/settings.ts';
import type { SimulatedSettings } from '../simulated/model.ts';
import { Fields } from './fields.ts';

export interface Address {
  readonly host: string;
  /** 0 chooses a free port. */
  readonly port: number;
}

/** Settings of the cloud with all defaults resolved. */
export interface Settings extends FileSettings {
  readonly listen: Address;
  /** Path of the SQLite database. */
  readonly data: string;
  readonly keysFile: string | undefined;
  /** Value of the environment variable CLOUD_API_KEYS. */
  readonly keys: string | undefined;
  readonly prohibitedFile: string | undefined;
  readonly driver: 'simulated' | 'qemu';
  readonly tls: { readonly certificateFile: string; readonly keyFile: string } | undefined;
  readonly logLevel: Level;
  readonly enableFaults: boolean;
}

/** Settings of the config file. */
export interface FileSettings {
  /** How long the idempotency key of a deleted server is kept. */
  readonly keepKeysMs: number;
  /** Interval between two observations of the machines. */
  readonly observeEveryMs: number;
  /** How long shutdown waits for pending requests. */
  readonly graceMs: number;
  readonly simulated: SimulatedSettings;
  readonly qemu: QemuSettings;
}

const DAY_MS = 24 * 60 * 60 * 1000;
const ANY = { min: 0, max: Number.POSITIVE_INFINITY };
const PERCENT = { min: 0, max: 100 };

/**
 * Reads and validates the config file.
 * @param file JSON file with paths relative to its directory; undefined for the defaults
 * @param data path of the database. The default `qemu.dir` is in the directory of the database.
 * @throws StartError if the file cannot be read or is invalid
 */
export function readConfigFile(file: string | undefined, data: string): FileSettings {
  const fields = new Fields(file ?? 'config', file === undefined ? {} : readJson(file));
  const baseDir = file === undefined ? '.' : dirname(file);
  const settings: FileSettings = {
    keepKeysMs: fields.number('keepKeysMs', 7 * DAY_MS, ANY),
    observeEveryMs: fields.number('observeEveryMs', 250, { min: 10, max: 60_000 }),
    graceMs: fields.number('graceMs', 10_000, ANY),
    simulated: fields.object('simulated', simulated),
    qemu: fields.object('qemu', (nested) => qemu(nested, baseDir, data)),
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
    cpu: fields.object('cpu', (cpu) => ({
      ...cpu.ownRange({ min: 5, max: 80 }, PERCENT),
      periodMs: cpu.number('periodMs', 300_000, { min: 1, max: Number.POSITIVE_INFINITY }),
      noise: cpu.number('noise', 5, PERCENT),
    })),
  };
}

function qemu(fields: Fields, baseDir: string, data: string): QemuSettings {
  const path = (name: string) => {
    const given = fields.string(name);
    return given === undefined ? undefined : resolve(baseDir, given);
  };
  const binary = fields.string('binary') ?? defaultBinary();
  return {
    // A bare name is searched on the PATH; any other path is relative to the config file.
    binary: binary.includes('/') ? resolve(baseDir, binary) : binary,
    dir: path('dir') ?? join(dirname(resolve(data)), 'machines'),
    memoryMb: fields.integer('memoryMb', 512, { min: 16, max: 1_048_576 }),
    cpus: fields.integer('cpus', 1, { min: 1, max: 256 }),
    accel: fields.choice('accel', ['auto', 'kvm', 'tcg']) ?? 'auto',
    cpu: fields.string('cpu'),
    image: path('image'),
    imageFormat: fields.choice('imageFormat', ['raw', 'qcow2']) ?? 'raw',
    args: fields.strings('args'),
  };
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    const why =
      error instanceof SyntaxError ? `${file} is not valid JSON: ${error.message}` : messageOf(error);
    throw new StartError('SETTINGS', `cannot read the config file: ${why}`, { cause: error });
  }
}
