"""the Language Server Protocol <-> Projects. Only this module and `failures` know pygls."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from mvbuild import __version__
from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic
from mvbuild.lint.fixing import proven_edits
from mvbuild.lint.model import Finding
from mvbuild.lsp.check import Checked, CheckOptions
from mvbuild.lsp.completion import Kind, complete
from mvbuild.lsp.definition import definition
from mvbuild.lsp.failures import Failed, Server, log_sentences, refusal
from mvbuild.lsp.hover import hover
from mvbuild.lsp.names import Names
from mvbuild.lsp.outline import Symbol, SymbolKind, symbols_of_file, symbols_of_project
from mvbuild.lsp.positions import normal, offset_of, range_of
from mvbuild.lsp.projects import Project, Projects, relative
from mvbuild.lsp.references import cte_references, reference_at, references
from mvbuild.lsp.rename import NotRenamed, place_of_name, renamed, target_at
from mvbuild.lsp.sql_text import cte_heads, is_cte
from mvbuild.source import SourceFile, Span

_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}
_KINDS: dict[Kind, types.CompletionItemKind] = {
    "table": types.CompletionItemKind.Struct,
    "column": types.CompletionItemKind.Field,
    "macro": types.CompletionItemKind.Function,
    "setting": types.CompletionItemKind.Property,
    "word": types.CompletionItemKind.EnumMember,
}
_SYMBOLS: dict[SymbolKind, types.SymbolKind] = {
    "model": types.SymbolKind.Class,
    "source": types.SymbolKind.Struct,
    "column": types.SymbolKind.Field,
    "cte": types.SymbolKind.Variable,
    "macro": types.SymbolKind.Function,
    "entry": types.SymbolKind.Object,
}
_FIX_ALL = "source.fixAll.mvbuild"
_WATCHED = "**/*.{sql,yml,yaml,csv,lock}"


@dataclass(slots=True)
class _Session:
    """What one client has open. Only the event loop uses it."""

    server: LanguageServer
    projects: Projects
    executor: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "mvbuild-check"))
    uris: dict[Path, str] = field(default_factory=dict)
    """The client's spelling of the URIs of open files."""

    @property
    def encoding(self) -> str:
        agreed = self.server.server_capabilities.position_encoding
        return str(getattr(agreed, "value", agreed) or "utf-16")

    def look(self, project: Project, delay: float | None = None) -> None:
        more = {} if delay is None else {"delay": delay}
        project.changed(self.executor, self.projects.choices, self.tell, **more)

    def tell(self, project: Project, checked: Checked, versions: Mapping[str, int | None]) -> None:
        """Report diagnostics. Open files without any get an empty report; earlier reports on other files are withdrawn."""
        found = project.by_file(checked.diagnostics)
        for path in sorted({*found, *project.reported, *(project.root / name for name in project.buffers)}):
            shown = [self._diagnostic(project, one) for one in found.get(path, ())]
            version = versions.get(relative(project.root, path))
            self.server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(self.uri(path), shown, version))
        project.reported = set(found)

    def uri(self, path: Path) -> str:
        return self.uris.get(path) or from_fs_path(str(path)) or path.as_uri()

    def range(self, span: Span | None) -> types.Range:
        start, end = range_of(span, self.encoding) if span is not None else ((0, 0), (0, 0))
        return types.Range(types.Position(*start), types.Position(*end))

    def location(self, project: Project, span: Span) -> types.Location:
        return types.Location(self.uri(Path(os.path.normpath(project.root / span.file.path))), self.range(span))

    def _diagnostic(self, project: Project, one: Diagnostic) -> types.Diagnostic:
        notes = [
            types.DiagnosticRelatedInformation(location=self.location(project, note.span), message=note.message)
            for note in one.notes
            if note.span is not None
        ]
        sentences = [note.message for note in one.notes if note.span is None]
        return types.Diagnostic(
            range=self.range(one.span),
            severity=_SEVERITIES[one.severity],
            code=one.code,
            source="mvbuild",
            message="\n".join(part for part in (one.message, *sentences, one.help) if part),
            related_information=notes or None,
        )

    def asked(self, document: types.TextDocumentIdentifier, position: types.Position) -> tuple[Project, str, str, int] | None:
        """The project, the path in it, the text and the offset of a request."""
        path = path_of(document.uri)
        project = self.projects.of(path) if path is not None else None
        if path is None or project is None:
            return None
        try:
            text = normal(self.server.workspace.get_text_document(document.uri).source)
        except (OSError, UnicodeError):
            return None  # It is not open, and the file does not exist or cannot be read.
        return project, relative(project.root, path), text, offset_of(text, (position.line, position.character), self.encoding)

    def compiled(self, document: types.TextDocumentIdentifier, position: types.Position) -> tuple[Project, Names, str, str, int] | None:
        """The same with the names of the project; None until it has compiled once."""
        asked = self.asked(document, position)
        names = asked[0].names if asked is not None else None
        return (asked[0], names, *asked[1:]) if asked is not None and names is not None else None


def path_of(uri: str) -> Path | None:
    """None for something that is not a file: an untitled buffer, a side of a diff."""
    found = to_fs_path(uri) if uri.startswith("file:") else None
    return Path(os.path.normpath(found)) if found else None


def serve(choices: CheckOptions, failed: Failed) -> None:
    """Serve over stdin and stdout until the end."""
    log_sentences()
    server = Server("mvbuild", __version__, failed)
    session = _Session(server, Projects(choices=choices, say=lambda message: _log(server, message)))
    _documents(server, session)
    _questions(server, session)
    _symbols(server, session)
    _edits(server, session)
    server.start_io()
    session.executor.shutdown(wait=False, cancel_futures=True)


def _documents(server: LanguageServer, session: _Session) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        session.projects.choices = _chosen(session.projects.choices, params.initialization_options)

    @server.feature(types.INITIALIZED)
    def initialized(_: types.InitializedParams) -> None:
        _watch(server)
        for folder in list(server.workspace.folders):
            for project in session.projects.below(path) if (path := path_of(folder)) else ():
                session.look(project, 0)

    def opened(uri: str) -> None:
        path = path_of(uri)
        project = session.projects.of(path) if path is not None else None
        if path is not None and project is not None:
            session.uris[path] = uri
            document = server.workspace.get_text_document(uri)
            name = relative(project.root, path)
            project.buffers[name], project.versions[name] = document.source, document.version
            session.look(project)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        opened(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        opened(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        opened(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        path = path_of(params.text_document.uri)
        project = session.projects.of(path) if path is not None else None
        if path is not None and project is not None:
            session.uris.pop(path, None)
            for known in (project.buffers, project.versions):
                known.pop(relative(project.root, path), None)
            session.look(project)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_files(params: types.DidChangeWatchedFilesParams) -> None:
        paths = [path for change in params.changes if (path := path_of(change.uri)) is not None]
        for project in {id(found): found for path in paths if (found := session.projects.of(path)) is not None}.values():
            if not all(relative(project.root, path).startswith("target/") for path in paths if path.is_relative_to(project.root)):
                session.look(project)


def _questions(server: LanguageServer, session: _Session) -> None:
    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def go_to_definition(params: types.DefinitionParams) -> types.Location | None:
        asked = session.asked(params.text_document, params.position)
        if asked is None:
            return None
        project, path, text, offset = asked
        span = definition(project.root, path, text, offset, project.names)
        return session.location(project, span) if span is not None else None

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def on_hover(params: types.HoverParams) -> types.Hover | None:
        asked = session.asked(params.text_document, params.position)
        if asked is None:
            return None
        project, path, text, offset = asked
        if project.names is not None:
            project.freshness.wanted(embedded=project.names.graph.project.target.embedded)
        shown = hover(project.root, path, text, offset, project.names, project.freshness)
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, shown)) if shown else None

    triggers = types.CompletionOptions(trigger_characters=["'", '"', ".", "(", "{", " "])

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, triggers)
    def completion(params: types.CompletionParams) -> types.CompletionList:
        asked = session.asked(params.text_document, params.position)
        if asked is None:
            return types.CompletionList(is_incomplete=False, items=[])
        project, path, text, offset = asked
        file = SourceFile(path, text)
        items = [
            types.CompletionItem(
                label=one.label,
                kind=_KINDS[one.kind],
                detail=one.detail or None,
                documentation=types.MarkupContent(types.MarkupKind.Markdown, one.doc) if one.doc else None,
                filter_text=text[one.start : offset] + one.label
                if one.new.startswith("{{") and "`" in text[one.start : offset]
                else one.label,
                text_edit=types.TextEdit(range=session.range(Span(file, one.start, offset)), new_text=one.new),
            )
            for one in complete(project.root, path, text, offset, project.names)
        ]
        return types.CompletionList(is_incomplete=False, items=items)


def _symbols(server: LanguageServer, session: _Session) -> None:
    def shown(one: Symbol) -> types.DocumentSymbol:
        whole, name = session.range(one.whole), session.range(one.name_span)
        return types.DocumentSymbol(one.name, _SYMBOLS[one.kind], whole, name, children=[shown(child) for child in one.children])

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def of_document(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        asked = session.asked(params.text_document, types.Position(0, 0))
        return [shown(one) for one in symbols_of_file(asked[1], asked[2])] if asked is not None else []

    @server.feature(types.WORKSPACE_SYMBOL)
    def of_workspace(params: types.WorkspaceSymbolParams) -> list[types.SymbolInformation]:
        return [
            types.SymbolInformation(session.location(project, one.name_span), one.name, _SYMBOLS[one.kind])
            for project in session.projects.by_root.values()
            if project.names is not None
            for one in symbols_of_project(project.names, params.query)
        ]

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    def of_name(params: types.ReferenceParams) -> list[types.Location]:
        asked = session.compiled(params.text_document, params.position)
        if asked is None:
            return []
        project, names, path, text, offset = asked
        named = reference_at(path, text, offset)
        if named is None:
            return []
        if is_cte(named, cte_heads(text)):
            return [session.location(project, span) for span in cte_references(SourceFile(path, text), named.parts[0])]
        node = names.node(named)
        found = references(names, node, project.files) if node is not None else ()
        return [session.location(project, one.span) for one in found]


def _edits(server: LanguageServer, session: _Session) -> None:
    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions([types.CodeActionKind.QuickFix, _FIX_ALL]))
    def fixes(params: types.CodeActionParams) -> list[types.CodeAction]:
        asked = session.compiled(params.text_document, params.range.start)
        if asked is None:
            return []
        project, names, path, text, start = asked
        end = offset_of(text, (params.range.end.line, params.range.end.character), session.encoding)
        own = [one for one in project.findings if one.span.file.path == path and one.span.file.text == text]
        here = [one for one in own if one.span.start <= end and start <= one.span.end]
        actions: list[tuple[str, str, list[Finding]]] = [(f"Fix {one.code}", types.CodeActionKind.QuickFix, [one]) for one in here]
        actions += [("Fix everything that mvbuild can fix in this file", _FIX_ALL, own)] if own else []
        return [
            types.CodeAction(title, kind, edit=types.WorkspaceEdit({params.text_document.uri: edits}))
            for title, kind, findings in actions
            if (edits := [types.TextEdit(session.range(e.span), e.new) for e in proven_edits(names.graph, findings, os.environ)])
        ]

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepare(params: types.PrepareRenameParams) -> types.Range | None:
        asked = session.compiled(params.text_document, params.position)
        if asked is None:
            return None
        _, names, path, text, offset = asked
        try:
            named, _ = target_at(path, text, offset, names)
        except NotRenamed as exc:
            raise refusal(str(exc)) from exc
        return session.range(Span(SourceFile(path, text), *place_of_name(text, named)))

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    def rename(params: types.RenameParams) -> types.WorkspaceEdit | None:
        asked = session.compiled(params.text_document, params.position)
        if asked is None:
            return None
        project, names, path, text, offset = asked
        try:
            found = renamed(path, text, offset, params.new_name, names, project.files)
        except NotRenamed as exc:
            raise refusal(str(exc)) from exc
        edits: dict[str, list[types.TextEdit | types.AnnotatedTextEdit | types.SnippetTextEdit]] = {}
        for span in found.spans:
            uri = session.location(project, span).uri
            edits.setdefault(uri, []).append(types.TextEdit(session.range(span), params.new_name))
        changes: list[Any] = [
            types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri), of_file) for uri, of_file in edits.items()
        ]
        if found.file is not None:
            old, new = (session.uri(Path(os.path.normpath(project.root / name))) for name in found.file)
            changes.append(types.RenameFile(old, new))
        if found.note:
            server.window_show_message(types.ShowMessageParams(types.MessageType.Info, found.note))
        return types.WorkspaceEdit(document_changes=changes)


def _log(server: LanguageServer, message: str) -> None:
    server.window_log_message(types.LogMessageParams(types.MessageType.Log, message))


def _watch(server: LanguageServer) -> None:
    """Watch for files that change outside the editor, for example when a branch is checked out."""
    files = server.client_capabilities.workspace and server.client_capabilities.workspace.did_change_watched_files
    if files and files.dynamic_registration:
        watchers = [types.FileSystemWatcher(glob_pattern=_WATCHED)]
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers=watchers)
        registration = types.Registration(id="mvbuild-files", method=types.WORKSPACE_DID_CHANGE_WATCHED_FILES, register_options=options)
        server.client_register_capability(types.RegistrationParams(registrations=[registration]))


def _chosen(choices: CheckOptions, options: Any) -> CheckOptions:
    """`initializationOptions`: {"target": ..., "vars": {...}, "freshness": false}. Other values are ignored."""
    if not isinstance(options, dict):
        return choices
    if isinstance(options.get("target"), str):
        choices = replace(choices, target=options["target"])
    if isinstance(options.get("vars"), dict):
        choices = replace(choices, vars={str(key): value for key, value in options["vars"].items()})
    if isinstance(options.get("freshness"), bool):
        choices = replace(choices, freshness=options["freshness"])
    return choices
