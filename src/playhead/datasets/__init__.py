"""Small ready-made datasets."""

from playhead.datasets.ids import Ids
from playhead.datasets.packed_speech_language import PackedSpeechLanguage
from playhead.datasets.speech_language import SpeechLanguage
from playhead.datasets.speech_to_text import SpeechToText

__all__ = ["Ids", "PackedSpeechLanguage", "SpeechLanguage", "SpeechToText"]
