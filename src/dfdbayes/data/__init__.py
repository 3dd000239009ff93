"""What a user has, as distinct rows with weights; and which values are neighbours."""
