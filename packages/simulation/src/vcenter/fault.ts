import { faultBody, type Ref, reference, text } from './xml.ts';

/** A vSphere fault: the error of a call or of a task. */
export class VimFault extends Error {
  readonly type: string;
  readonly #fields: string;

  constructor(type: string, fields = '') {
    super(type);
    this.type = type;
    this.#fields = fields;
  }

  /** The SOAP response with this fault. */
  get body(): string {
    return faultBody(this.type, this.#fields, '');
  }

  /** The content of a LocalizedMethodFault with this fault. */
  get localized(): string {
    return `<fault xsi:type="${this.type}">${this.#fields}</fault><localizedMessage></localizedMessage>`;
  }
}

export function notAuthenticated(): VimFault {
  return new VimFault('NotAuthenticated', '<privilegeId>System.View</privilegeId>');
}

export function managedObjectNotFound(ref: Ref): VimFault {
  return new VimFault('ManagedObjectNotFound', reference('obj', ref));
}

export function duplicateName(name: string, holder: Ref): VimFault {
  return new VimFault('DuplicateName', `<name>${text(name)}</name>${reference('object', holder)}`);
}

export function invalidPowerState(requested: string, existing: string): VimFault {
  const fields = `<requestedState>${requested}</requestedState><existingState>${existing}</existingState>`;
  return new VimFault('InvalidPowerState', fields);
}

export function invalidArgument(property: string): VimFault {
  return new VimFault('InvalidArgument', `<invalidProperty>${property}</invalidProperty>`);
}

export function taskInProgress(task: Ref): VimFault {
  return new VimFault('TaskInProgress', reference('task', task));
}
